"""Boxes, regions of interest and other parts of detectors."""

ENTRIES = """
batched_nms box_area clip_boxes_to_image masks_to_boxes remove_small_boxes: torch_boxes=0.boxes
bipartite_match yolo_box_head: paddle
box_clip: paddle_boxes=0.input paddle
box_coder: paddle_boxes=0.prior_box paddle
box_iou complete_box_iou distance_box_iou generalized_box_iou: box_pairs torch_boxes=0.boxes1
collect_fpn_proposals: paddle_boxes=0.multi_level_rois paddle
distribute_fpn_proposals: paddle_boxes=0.fpn_rois paddle paddle_args=t.t.i.i.i.i.b
generate_proposals: paddle_boxes=3.anchors paddle paddle_args=t.t.t.t.t.i.i.f.f.f.b
matrix_nms multiclass_nms3: paddle_boxes=0.bboxes paddle
nms: torch_boxes=0.boxes paddle_boxes=0.x paddle paddle_args=t.f
prior_box: paddle paddle_args=t.t.F.EF.F.F.b.b.f.f.f.b
ps_roi_align: torch_boxes=1.boxes
roi_align: torch_boxes=1.boxes paddle_boxes=1.boxes paddle paddle_grad paddle_args=t.t.t.i.i.f.i.b
yolo_box: paddle paddle_args=t.t.I.i.f.i.b.f.b.f
"""
